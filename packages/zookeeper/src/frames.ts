import { ProtocolError } from './errors.js'

/** A request of more bytes is refused by servers, which close the connection then. */
export const MAX_REQUEST_SIZE = 1_048_575

/** Replies may be longer than requests (children of one node); beyond this it is no ZooKeeper that speaks. */
export const MAX_REPLY_SIZE = 64 * 1024 * 1024

/** Cuts what arrives on one connection into frames, however it was split or joined on its way. */
export class Frames {
  #chunks: Buffer[] = []
  #size = 0

  /**
   * The frames that are complete with this chunk, without their lengths.
   * @throws ProtocolError when a length can't be one; before anything is kept for it
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

  /** Once a frame, when it is complete: joining at each chunk would cost the square of their number. */
  #join(): void {
    this.#chunks = [Buffer.concat(this.#chunks)]
  }
}
