import { below } from './paths.js'

/** Writes a request in Jute, ZooKeeper's serialization: big-endian numbers, strings and bytes with their length. */
export class JuteWriter {
  readonly #chroot: string
  #bytes: Buffer
  #length = 4

  /**
   * @param size expected number of bytes. The buffer grows if necessary.
   * @param chroot the path to which the client's paths are relative; '' for none.
   */
  constructor(size = 256, chroot = '') {
    this.#bytes = Buffer.allocUnsafe(size + 4)
    this.#chroot = chroot
  }

  int(value: number): this {
    this.#room(4)
    this.#length = this.#bytes.writeInt32BE(value, this.#length)
    return this
  }

  long(value: bigint): this {
    this.#room(8)
    this.#length = this.#bytes.writeBigInt64BE(value, this.#length)
    return this
  }

  bool(value: boolean): this {
    this.#room(1)
    this.#bytes[this.#length++] = value ? 1 : 0
    return this
  }

  bytes(value: Uint8Array): this {
    this.int(value.length)
    this.#room(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
    return this
  }

  text(value: string): this {
    const size = Buffer.byteLength(value)
    this.int(size)
    this.#room(size)
    this.#length += this.#bytes.write(value, this.#length)
    return this
  }

  /** A path, relative to the chroot. */
  path(value: string): this {
    return this.text(below(this.#chroot, value))
  }

  list<T>(values: readonly T[], write: (value: T) => void): this {
    this.int(values.length)
    for (const value of values) write(value)
    return this
  }

  /** Number of written bytes. */
  get size(): number {
    return this.#length - 4
  }

  /** Returns everything that was written, with its length, as it is sent. */
  frame(): Buffer {
    this.#bytes.writeInt32BE(this.size, 0)
    return this.#bytes.subarray(0, this.#length)
  }

  #room(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
