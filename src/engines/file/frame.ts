/** Maximum length of a message, in bytes of UTF-8. */
const MAX_MESSAGE_SIZE = 64 * 1024
/** Size of the header, in bytes. It has the length of the message as a big-endian 32-bit number. */
const HEADER = 4
/** Maximum size of a frame, in bytes. */
export const MAX_FRAME_SIZE = HEADER + MAX_MESSAGE_SIZE

/** Returns the frame of a message; undefined if the message is longer than 64 KB. */
export function toFrame(message: string): Buffer | undefined {
  const length = Buffer.byteLength(message)
  if (length > MAX_MESSAGE_SIZE) return undefined
  const frame = Buffer.allocUnsafe(HEADER + length)
  frame.writeUInt32BE(length)
  frame.write(message, HEADER)
  return frame
}

/**
 * Maximum number of units that a sender may have sent to one receiver without an acknowledgement. Both sides count
 * units in the same way. The system's buffer for a socket holds about 270 small messages or 200 KB. Below that, a write
 * never waits for a receiver that doesn't read, so it neither takes up memory nor keeps a finished process alive.
 */
export const WINDOW = 128
/** Number of units that the receiver acknowledges by one byte, after reading them. */
export const STEP = 16

/** Returns the units of a frame: one for each full kilobyte, and one for the system's own record of the frame. */
export function unitsOf(size: number): number {
  return 1 + (size >> 10)
}

/** Assembles messages from the chunks of a byte stream. Keeps less than one message in memory. */
export class FrameReader {
  #rest: Buffer | undefined

  /**
   * Calls `receive` with each complete message and the size of its frame in bytes. Returns false if the bytes are not
   * valid frames. Then the rest of the stream is invalid, too.
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
