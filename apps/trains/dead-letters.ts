import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { InputError } from './input/source.js'
import { checkWritable } from '../output-file.js'
import type { DeadLetter } from './supervisor/supervisor.js'

/** The file of dead letters: a line of JSON for each, with the message, the reason and the time. */
export class DeadLetterFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Creates the folder, and checks that the file can be written. @throws InvalidArgumentError if it can't. */
  check(): void {
    const folder = dirname(this.path)
    try {
      mkdirSync(folder, { recursive: true })
    } catch (cause) {
      throw new InputError(`can't create the folder ${folder} for dead letters`, { cause })
    }
    checkWritable(this.path)
  }

  /** Deletes the file of an earlier run. @throws the system's error if that fails. */
  clear(): void {
    rmSync(this.path, { force: true })
  }

  /** Appends a message to the file before it returns. @throws the system's error if that fails. */
  keep({ message, reason }: DeadLetter): void {
    mkdirSync(dirname(this.path), { recursive: true })
    appendFileSync(this.path, `${JSON.stringify({ time: new Date().toISOString(), reason, message })}\n`)
  }
}
