import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Section } from './lock-cycles.js'

const HOLDER = 0
const TOKEN = 1

/** A section in a file, which detects two processes inside at the same time. Its two fields are 64-bit numbers. */
export class GuardedFile implements Section {
  readonly #descriptor: number
  readonly #holder: bigint
  readonly #fields = new BigUint64Array(2)

  /** @param process the number of this process, from 0. */
  constructor(folder: string, process: number) {
    this.#descriptor = openSync(join(folder, 'guarded'), constants.O_RDWR | constants.O_CREAT)
    this.#holder = BigInt(process + 1)
  }

  enter(token: bigint | undefined): string | undefined {
    this.#read()
    const [holder, last] = this.#fields as unknown as [bigint, bigint]
    this.#fields[HOLDER] = this.#holder
    if (token !== undefined) this.#fields[TOKEN] = token
    this.#write()
    if (holder !== 0n) return `process ${holder} was inside when process ${this.#holder} came in`
    if (token !== undefined && token <= last) return `token ${token} was given after token ${last}`
    return undefined
  }

  leave(): string | undefined {
    this.#read()
    const holder = this.#fields[HOLDER]!
    this.#fields[HOLDER] = 0n
    this.#write()
    return holder === this.#holder
      ? undefined
      : `process ${holder} came in while process ${this.#holder} was inside`
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  #read(): void {
    this.#fields.fill(0n)
    readSync(this.#descriptor, this.#fields, 0, this.#fields.byteLength, 0)
  }

  #write(): void {
    writeSync(this.#descriptor, this.#fields, 0, this.#fields.byteLength, 0)
  }
}
