import { withoutSecrets } from './secrets.js'

/** Renders an error as one line without passwords, with those of its causes that add something. */
export function failureText(error: unknown): string {
  const messages: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) {
    const { message } = at
    if (!messages.some(known => known.includes(message))) messages.push(message)
  }
  return withoutSecrets(messages.length > 0 ? messages.join(': ') : String(error))
}
