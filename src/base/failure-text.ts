import { shown } from './errors.js'
import { withoutSecrets } from './secrets.js'

/**
 * Renders an error as one line without passwords, with those of its causes that add something. Never throws, although a
 * task may throw any value.
 */
export function failureText(error: unknown): string {
  try {
    return withoutSecrets(messagesOf(error).join(': ') || String(error))
  } catch {
    // The value does not convert to a string.
    return shown(error)
  }
}

function messagesOf(error: unknown): readonly string[] {
  const messages: string[] = []
  const seen = new Set<unknown>()
  for (let at = error; at instanceof Error && !seen.has(at); at = at.cause) {
    seen.add(at)
    const { message }: { message: unknown } = at
    const text = String(message)
    if (!messages.some(known => known.includes(text))) messages.push(text)
  }
  return messages
}
