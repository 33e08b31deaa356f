import type { Readable } from 'node:stream'
import { onAbort } from '../base/abort-task.js'

const LINE_FEED = 10

/**
 * Yields the lines of a stream, byte for byte, each with its line feed. The last one may have none.
 * @throws the stream's error, and the signal's reason.
 */
export async function* linesOf(stream: Readable, signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
  signal.throwIfAborted()
  const letGo = onAbort(signal, () => void stream.destroy(signal.reason as Error))
  const begun: Buffer[] = []
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      let from = 0
      for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
        yield Buffer.concat([...begun.splice(0), chunk.subarray(from, at + 1)])
        from = at + 1
      }
      if (from < chunk.length) begun.push(chunk.subarray(from))
    }
    if (begun.length > 0) yield Buffer.concat(begun)
  } finally {
    letGo()
  }
}
