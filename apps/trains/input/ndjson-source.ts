import { basename } from 'node:path'
import { InvalidMessageError } from '../messages/message.js'
import { registry } from '../messages/registry.js'
import { reasonOf } from '../reason.js'
import { readLines, type Line } from './lines.js'
import type { FindingsListener } from './findings.js'
import type { MessageSource, TimedMessage } from './source.js'

/** Number of newest IDs that are kept to detect duplicates. Enough for messages that senders repeat. */
const MAX_IDS = 1_000_000

/** The input of lines: its name, its bytes, and the maximum number of messages, if known. */
export interface NdjsonInput {
  readonly file: string
  readonly bytes: AsyncIterable<Uint8Array | string>
  readonly total: number | undefined
}

/** Reads messages from lines of JSON, one object per line. Skips blank lines. */
export class NdjsonSource implements MessageSource {
  readonly days = undefined
  readonly locationNames: ReadonlyMap<string, string> = new Map()
  readonly geography = undefined
  readonly #input: NdjsonInput
  readonly #findings: FindingsListener
  /** The line numbers of the newest IDs, oldest first. */
  readonly #idLines = new Map<string, number>()

  constructor(input: NdjsonInput, findings: FindingsListener) {
    this.#input = input
    this.#findings = findings
  }

  get name(): string {
    return basename(this.#input.file)
  }

  get description(): string {
    return `messages of ${this.#input.file}`
  }

  get total(): number | undefined {
    return this.#input.total
  }

  async *batches(): AsyncGenerator<readonly TimedMessage[]> {
    for await (const lines of readLines(this.#input.bytes)) {
      const batch: TimedMessage[] = []
      for (const line of lines) {
        try {
          const message = this.#messageOf(line)
          if (message) batch.push(message)
        } catch (error) {
          if (!(error instanceof InvalidMessageError)) throw error
          const { kind, message: reason } = error
          this.#findings.rejected({ file: this.#input.file, line: line.number, kind, reason })
        }
      }
      if (batch.length > 0) yield batch
    }
  }

  #messageOf(line: Line): TimedMessage | undefined {
    if (line.fault) throw new InvalidMessageError(line.fault.reason, line.fault.kind)
    if (line.text.trim() === '') return undefined
    const message = registry.validate(parsed(line.text))
    const usedOn = this.#idLines.get(message.id)
    if (usedOn !== undefined) {
      const id = JSON.stringify(message.id)
      throw new InvalidMessageError(`duplicate "id" ${id}, first on line ${usedOn}`, 'duplicate id')
    }
    this.#remember(message.id, line.number)
    return { message }
  }

  #remember(id: string, line: number): void {
    this.#idLines.set(id, line)
    if (this.#idLines.size <= MAX_IDS) return
    const oldest = this.#idLines.keys().next()
    if (!oldest.done) this.#idLines.delete(oldest.value)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new InvalidMessageError(`invalid JSON: ${reasonOf(error)}`, 'not JSON')
  }
}

/** Returns the number of lines except blank ones, which is the maximum number of messages. */
export async function countFilledLines(bytes: AsyncIterable<Uint8Array>): Promise<number> {
  let filled = 0
  let blank = true
  for await (const chunk of bytes) {
    for (const byte of chunk) {
      if (byte === 0x0a) {
        if (!blank) filled++
        blank = true
      } else if (byte !== 0x20 && byte !== 0x0d && byte !== 0x09) blank = false
    }
  }
  return blank ? filled : filled + 1
}
