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

/** Assembles messages from the chunks of a byte stream. Keeps less than one message in memory. */
export class FrameReader {
  #rest: Buffer | undefined

  /**
   * Calls `receive` with each complete message. Returns false if the bytes are not valid frames. Then the rest of the
   * stream is invalid, too.
   */
  push(chunk: Buffer, receive: (message: string) => void): boolean {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = undefined
    let at = 0
    while (bytes.length - at >= HEADER) {
      const length = bytes.readUInt32BE(at)
      if (length > MAX_MESSAGE_SIZE) return false
      const end = at + HEADER + length
      if (end > bytes.length) break
      receive(bytes.toString('utf8', at + HEADER, end))
      at = end
    }
    if (at < bytes.length) this.#rest = bytes.subarray(at)
    return true
  }
}
