/** The longest message, bytes of UTF-8. */
const LONGEST_MESSAGE = 64 * 1024
/** The length of the message stands before it, a 32-bit number with the highest byte first. */
const HEADER = 4
/** Bytes of the longest frame. */
export const LONGEST_FRAME = HEADER + LONGEST_MESSAGE

/** What travels for a message; undefined when it is longer than 64 KB. */
export function toFrame(message: string): Buffer | undefined {
  const length = Buffer.byteLength(message)
  if (length > LONGEST_MESSAGE) return undefined
  const frame = Buffer.allocUnsafe(HEADER + length)
  frame.writeUInt32BE(length)
  frame.write(message, HEADER)
  return frame
}

/** Puts messages together from a stream of bytes that arrives in pieces. Keeps less than one message. */
export class FrameReader {
  #rest: Buffer | undefined

  /**
   * Calls `receive` with each message that is complete, and with the bytes of its frame.
   * Returns false when the bytes are no frames; then what follows them means nothing either.
   */
  push(chunk: Buffer, receive: (message: string, size: number) => void): boolean {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = undefined
    let at = 0
    while (bytes.length - at >= HEADER) {
      const length = bytes.readUInt32BE(at)
      if (length > LONGEST_MESSAGE) return false
      const end = at + HEADER + length
      if (end > bytes.length) break
      receive(bytes.toString('utf8', at + HEADER, end), end - at)
      at = end
    }
    if (at < bytes.length) this.#rest = bytes.subarray(at)
    return true
  }
}
