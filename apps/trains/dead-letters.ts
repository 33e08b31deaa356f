import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { InputError } from './input/source.js'
import { checkWritable } from '../output-file.js'
import type { DeadLetter } from './supervisor/supervisor.js'

/** Keeps messages that were given up: one line of JSON each, with the message, the reason and the time. */
export class DeadLetterFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Makes its folder. @throws InputError or InvalidArgumentError when letters could not be written there. */
  check(): void {
    const folder = dirname(this.path)
    try {
      mkdirSync(folder, { recursive: true })
    } catch (cause) {
      throw new InputError(`can't make the folder ${folder} for dead letters`, { cause })
    }
    checkWritable(this.path)
  }

  /** Removes what an earlier run has left. @throws the system's error when that is not possible. */
  clear(): void {
    rmSync(this.path, { force: true })
  }

  /**
   * Writes a message down; it is in the file when this returns. @throws the system's error when it can't be written.
   */
  keep({ message, reason }: DeadLetter): void {
    mkdirSync(dirname(this.path), { recursive: true })
    appendFileSync(this.path, `${JSON.stringify({ time: new Date().toISOString(), reason, message })}\n`)
  }
}
