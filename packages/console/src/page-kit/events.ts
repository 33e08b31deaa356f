/** Maximum number of bytes that a page has not yet read. A page with more is disconnected, and reconnects. */
export const MAX_BACKLOG = 4 << 20

/** Headers of server-sent events. They prevent proxies from delaying events. */
export const EVENT_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
} as const

let last: { readonly message: object; readonly bytes: Uint8Array } | undefined

/** Renders a message as a server-sent event. All pages that receive the message share the result. */
export function eventBytes(message: object): Uint8Array {
  if (last?.message !== message)
    last = { message, bytes: new TextEncoder().encode(`data: ${JSON.stringify(message)}\n\n`) }
  return last.bytes
}
