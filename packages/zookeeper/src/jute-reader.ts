import { ProtocolError } from './errors.js'
import { without } from './paths.js'

/** Reads the replies of a server. Never reads beyond the end, and creates no list longer than the remaining bytes. */
export class JuteReader {
  readonly #bytes: Buffer
  readonly #chroot: string
  #at = 0

  /** @param chroot is removed from the beginning of paths. */
  constructor(bytes: Buffer, chroot = '') {
    this.#bytes = bytes
    this.#chroot = chroot
  }

  /** Number of unread bytes. */
  get left(): number {
    return this.#bytes.length - this.#at
  }

  /** @throws ProtocolError, like the other methods, if the reply ends within the value. */
  int(): number {
    return this.#bytes.readInt32BE(this.#take(4, 'a number'))
  }

  long(): bigint {
    return this.#bytes.readBigInt64BE(this.#take(8, 'a long number'))
  }

  bool(): boolean {
    const value = this.#bytes[this.#take(1, 'a truth value')]!
    if (value > 1) throw new ProtocolError(`the reply has ${value} instead of a boolean`)
    return value === 1
  }

  /** Returns a copy of the bytes; empty for null. */
  bytes(): Buffer {
    const size = this.#size('bytes')
    const at = this.#take(size, 'bytes')
    return Buffer.from(this.#bytes.subarray(at, at + size))
  }

  text(): string {
    const size = this.#size('a text')
    const at = this.#take(size, 'a text')
    return this.#bytes.toString('utf8', at, at + size)
  }

  /** A path, relative to the chroot. */
  path(): string {
    return without(this.#chroot, this.text())
  }

  /** @param min minimum size of an element, in bytes. */
  list<T>(min: number, read: () => T): T[] {
    const count = this.#size('a list')
    if (count * min > this.left)
      throw new ProtocolError(`the reply has a list of ${count}, but only ${this.left} bytes are left`)
    const values: T[] = []
    for (let index = 0; index < count; index++) values.push(read())
    return values
  }

  /** A length; -1 stands for null. */
  #size(what: string): number {
    const size = this.int()
    if (size < -1) throw new ProtocolError(`the reply has ${what} of length ${size}`)
    return Math.max(size, 0)
  }

  #take(size: number, what: string): number {
    if (size > this.left)
      throw new ProtocolError(
        `the reply ends within ${what}: it needs ${size} bytes, and ${this.left} are left`,
      )
    const at = this.#at
    this.#at += size
    return at
  }
}
