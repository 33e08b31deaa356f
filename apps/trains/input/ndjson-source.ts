import { basename } from 'node:path'
import { InvalidMessageError, type Message } from '../messages/message.js'
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
export function ndjsonSource({ file, bytes, total }: NdjsonInput, findings: FindingsListener): MessageSource {
  /** The line numbers of the newest IDs, oldest first. */
  const idLines = new Map<string, number>()
  return {
    name: basename(file),
    description: `messages of ${file}`,
    total,
    days: undefined,
    locationNames: new Map(),
    geography: undefined,
    async *batches() {
      for await (const lines of readLines(bytes)) {
        const batch: TimedMessage[] = []
        for (const line of lines) {
          try {
            const message = messageOf(line, idLines)
            if (message) batch.push({ message })
          } catch (error) {
            if (!(error instanceof InvalidMessageError)) throw error
            findings.rejected({ file, line: line.number, kind: error.kind, reason: error.message })
          }
        }
        if (batch.length > 0) yield batch
      }
    },
  }
}

function messageOf(line: Line, idLines: Map<string, number>): Message | undefined {
  if (line.fault) throw new InvalidMessageError(line.fault.reason, line.fault.kind)
  if (line.text.trim() === '') return undefined
  const message = registry.validate(parsed(line.text))
  const usedOn = idLines.get(message.id)
  if (usedOn !== undefined) {
    const id = JSON.stringify(message.id)
    throw new InvalidMessageError(`duplicate "id" ${id}, first on line ${usedOn}`, 'duplicate id')
  }
  idLines.set(message.id, line.number)
  if (idLines.size > MAX_IDS) idLines.delete(idLines.keys().next().value!)
  return message
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
