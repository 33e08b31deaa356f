/** Maximum number of bytes that a page has not yet read. One with more is disconnected, and connects again. */
export const MAX_BACKLOG = 4 << 20

/** Headers of server-sent events. Nothing between the server and the page must hold events back. */
export const EVENT_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
} as const

let last: { readonly message: object; readonly bytes: Uint8Array } | undefined

/** Renders a message as a server-sent event; once for all pages that receive it. */
export function eventBytes(message: object): Uint8Array {
  if (last?.message !== message)
    last = { message, bytes: new TextEncoder().encode(`data: ${JSON.stringify(message)}\n\n`) }
  return last.bytes
}
