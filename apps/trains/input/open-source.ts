import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { openTimetable } from '../gtfs/gtfs-source.js'
import type { Settings } from '../options.js'
import { reasonOf } from '../reason.js'
import { countFilledLines, ndjsonSource, type NdjsonInput } from './ndjson-source.js'
import type { FindingsListener } from './findings.js'
import { InputError, type MessageSource } from './source.js'

/** @throws InputError if the input can't be read, or its timetable is unusable. */
export async function openSource(
  input: Settings['input'],
  findings: FindingsListener,
): Promise<MessageSource> {
  if (input.kind === 'timetable') return openTimetable(input, findings)
  const lines = input.path === '-' ? standardInput() : await messageFile(input.path)
  return ndjsonSource(lines, findings)
}

function standardInput(): NdjsonInput {
  return { file: 'standard input', bytes: process.stdin as AsyncIterable<Uint8Array>, total: undefined }
}

async function messageFile(path: string): Promise<NdjsonInput> {
  try {
    const stats = await stat(path)
    if (stats.isDirectory()) throw new Error('it is a folder')
    // A pipe can be read only once, so its lines are not counted.
    const total = stats.isFile() ? await countFilledLines(bytesOf(path)) : undefined
    return { file: path, bytes: bytesOf(path), total }
  } catch (error) {
    throw new InputError(`can't read ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path) as AsyncIterable<Uint8Array>
}
