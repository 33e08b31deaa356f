/** Delay before the next attempt to connect, in milliseconds. */
const RETRY_DELAY = 1000
/** Time without data after which a connection is dropped, in milliseconds. */
const MAX_SILENCE = 20_000

/** A failed request. Its message is for the user. */
export class RequestError extends Error {}

/** Receives the events of a server. */
export interface Follower {
  /**
   * Asks for the events.
   * @throws RequestError if the server refuses.
   */
  open(signal: AbortSignal): Promise<Response>
  /** Resolves when the page may connect again. */
  ready?(): Promise<void>
  /** Receives each message. @param isFirst whether it is the first one of a connection. */
  take(message: unknown, isFirst: boolean): void
  /** Called when the connection is lost. @param reason the reason, as a sentence. */
  lost(reason: string): void
}

/** Follows server-sent events until a signal aborts. Reconnects whenever the connection is lost. */
export async function followEvents(follower: Follower, signal?: AbortSignal): Promise<void> {
  for (;;) {
    let reason = 'The server closed the connection.'
    try {
      await readEvents(follower, signal)
    } catch (error) {
      reason = error instanceof RequestError ? error.message : 'The server of this page does not answer.'
    }
    if (signal?.aborted === true) return
    follower.lost(reason)
    await new Promise(resolve => setTimeout(resolve, RETRY_DELAY))
    await follower.ready?.()
  }
}

/** Connects, and takes messages until the connection ends. */
async function readEvents(follower: Follower, signal: AbortSignal | undefined): Promise<void> {
  const silence = new AbortController()
  const end = signal ? AbortSignal.any([silence.signal, signal]) : silence.signal
  const giveUp = (): ReturnType<typeof setTimeout> => setTimeout(() => silence.abort(), MAX_SILENCE)
  let timer = giveUp()
  try {
    const response = await follower.open(end)
    const type = response.headers.get('content-type') ?? ''
    if (!response.ok || !type.startsWith('text/event-stream') || !response.body)
      throw new RequestError(
        `The server answered with status ${response.status}; you may have to sign in again.`,
      )
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let parts: string[] = []
    let isFirst = true
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      clearTimeout(timer)
      timer = giveUp()
      const [first, ...others] = next.value.split('\n')
      parts.push(first!)
      for (const other of others) {
        const line = parts.join('')
        parts = [other]
        // A message is one line, followed by an empty one.
        if (line === '') continue
        follower.take(JSON.parse(line.slice('data: '.length)), isFirst)
        isFirst = false
      }
    }
  } finally {
    clearTimeout(timer)
    silence.abort()
  }
}
