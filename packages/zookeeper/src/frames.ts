import { ProtocolError } from './errors.js'

/** Maximum size of a request, in bytes. Servers close the connection at a longer one. */
export const MAX_REQUEST_SIZE = 1_048_575

/**
 * Maximum size of a reply, in bytes. Replies can be longer than requests, but a longer one than this is not from
 * ZooKeeper.
 */
export const MAX_REPLY_SIZE = 64 * 1024 * 1024

/** Splits the data of one connection into frames, no matter how it was fragmented in transit. */
export class Frames {
  #chunks: Buffer[] = []
  #size = 0

  /**
   * Returns the frames that are complete with this chunk, without their lengths.
   * @throws ProtocolError if a length is invalid; before memory is allocated for it
   */
  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    const frames: Buffer[] = []
    while (this.#size >= 4) {
      const length = this.#peekLength()
      if (length < 0 || length > MAX_REPLY_SIZE)
        throw new ProtocolError(
          `the server announced a reply of ${length} bytes; it is not a ZooKeeper server`,
        )
      if (this.#size < 4 + length) break
      frames.push(this.#cut(4 + length).subarray(4))
    }
    return frames
  }

  #peekLength(): number {
    const [first] = this.#chunks
    if (first!.length < 4) this.#join()
    return this.#chunks[0]!.readInt32BE(0)
  }

  #cut(length: number): Buffer {
    if (this.#chunks[0]!.length < length) this.#join()
    const [first] = this.#chunks
    const rest = first!.subarray(length)
    if (rest.length > 0) this.#chunks[0] = rest
    else this.#chunks.shift()
    this.#size -= length
    return first!.subarray(0, length)
  }

  /** Called once for each frame, when it is complete: joining at each chunk would take quadratic time. */
  #join(): void {
    this.#chunks = [Buffer.concat(this.#chunks)]
  }
}
