import type { Message } from './messages.js'

/** Maximum number of bytes that a viewer has not yet read. One with more is disconnected, and connects again. */
export const MAX_BACKLOG = 4 << 20

let last: { readonly message: Message; readonly bytes: Uint8Array } | undefined

/** Renders a message as a server-sent event; once for all viewers that receive it. */
export function eventBytes(message: Message): Uint8Array {
  if (last?.message !== message)
    last = { message, bytes: new TextEncoder().encode(`data: ${JSON.stringify(message)}\n\n`) }
  return last.bytes
}
