/** The longest message, bytes of UTF-8. */
const MAX_MESSAGE_SIZE = 64 * 1024
/** The length of the message stands before it, a 32-bit number with the highest byte first. */
const HEADER = 4
/** Bytes of the longest frame. */
export const MAX_FRAME_SIZE = HEADER + MAX_MESSAGE_SIZE

/** What travels for a message; undefined when it is longer than 64 KB. */
export function toFrame(message: string): Buffer | undefined {
  const length = Buffer.byteLength(message)
  if (length > MAX_MESSAGE_SIZE) return undefined
  const frame = Buffer.allocUnsafe(HEADER + length)
  frame.writeUInt32BE(length)
  frame.write(message, HEADER)
  return frame
}

/**
 * How much a sender may have under way to one receiver, in units that both sides count alike. The system's buffer for a
 * socket holds about 270 small messages or 200 KB. Below that, a write never waits for a receiver that doesn't read, so
 * it neither takes up memory nor keeps a finished process alive.
 */
export const WINDOW = 128
/** The receiver sends one byte back each time it has read this many units. */
export const STEP = 16

/** The units of a frame: the system's own record for each piece counts as much as a kilobyte. */
export function unitsOf(size: number): number {
  return 1 + (size >> 10)
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
      if (length > MAX_MESSAGE_SIZE) return false
      const end = at + HEADER + length
      if (end > bytes.length) break
      receive(bytes.toString('utf8', at + HEADER, end), end - at)
      at = end
    }
    if (at < bytes.length) this.#rest = bytes.subarray(at)
    return true
  }
}
