import { closeSync, openSync, writeSync } from 'node:fs'
import type { LineSink } from './log.js'

/** How many characters are collected before they are written. */
const FULL = 64 * 1024

/** How long a line is kept back at most, in milliseconds. A process that is killed loses as much of its log. */
const KEPT_BACK = 100

/**
 * Appends whole lines to a file, many at a time. Several processes may append to the same file: what one write brings
 * stays together.
 */
export class LogFile implements LineSink {
  readonly #file: number
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  private constructor(file: number) {
    this.#file = file
  }

  /** Opens the file, which is made when it is not there. @throws the system's error when it can't be opened. */
  static open(path: string): LogFile {
    return new LogFile(openSync(path, 'a'))
  }

  write(line: string): void {
    this.#lines += line
    if (this.#lines.length >= FULL) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), KEPT_BACK).unref()
  }

  /** Writes what was kept back. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = Buffer.from(this.#lines)
    this.#lines = ''
    for (let written = 0; written < lines.length;) written += writeSync(this.#file, lines, written)
  }

  /** Writes what was kept back and closes the file. */
  close(): void {
    this.flush()
    closeSync(this.#file)
  }
}
