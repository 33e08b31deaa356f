import { createReadStream } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { fromRandomAccessReaderPromise, RandomAccessReader, type ZipFile } from 'yauzl'

/** Signatures in zip files: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.12 and 4.3.16 */
const DIRECTORY_ENTRY = Buffer.from([0x50, 0x4b, 0x01, 0x02])
const DIRECTORY_END = Buffer.from([0x50, 0x4b, 0x05, 0x06])
const END_LENGTH = 22
/** A field with this value refers to the ZIP64 extension of the format. */
const IN_ZIP64 = 0xffffffff
const BLOCK = 64 * 1024

/** The position of a zip archive in a file. */
interface Bounds {
  readonly start: number
  readonly end: number
}

/** Opens a zip archive that may have other bytes before and after it. Rejects if the file contains no archive. */
export async function openArchiveIn(path: string): Promise<ZipFile> {
  const file = await open(path)
  let bounds: Bounds
  try {
    bounds = await boundsIn(file)
  } finally {
    await file.close()
  }
  const slice = new ArchiveSlice(path, bounds)
  return fromRandomAccessReaderPromise(slice, bounds.end - bounds.start, { autoClose: false })
}

class ArchiveSlice extends RandomAccessReader {
  readonly #path: string
  readonly #start: number

  constructor(path: string, { start }: Bounds) {
    super()
    this.#path = path
    this.#start = start
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return createReadStream(this.#path, { start: this.#start + start, end: this.#start + end - 1 })
  }
}

/** Returns the position of the last archive in the file; the whole file if none is found. */
async function boundsIn(file: FileHandle): Promise<Bounds> {
  const { size } = await file.stat()
  for (let from = size - BLOCK; from > -BLOCK; from -= BLOCK) {
    const block = await read(file, Math.max(from, 0), from + BLOCK + END_LENGTH - 1, size)
    for (
      let at = block.lastIndexOf(DIRECTORY_END);
      at >= 0;
      at = at === 0 ? -1 : block.lastIndexOf(DIRECTORY_END, at - 1)
    ) {
      const record = block.subarray(at, at + END_LENGTH)
      const bounds = await boundsAt(file, Math.max(from, 0) + at, record, size)
      if (bounds) return bounds
    }
  }
  return { start: 0, end: size }
}

/** Returns the position of the archive whose directory ends with this record; undefined if the record is invalid. */
async function boundsAt(
  file: FileHandle,
  at: number,
  record: Buffer,
  size: number,
): Promise<Bounds | undefined> {
  if (record.length < END_LENGTH) return undefined
  const [length, offset] = [record.readUInt32LE(12), record.readUInt32LE(16)]
  const end = at + END_LENGTH + record.readUInt16LE(20)
  if (end > size) return undefined
  if (offset === IN_ZIP64) return { start: 0, end }
  const start = at - length - offset
  if (start < 0) return undefined
  const first = await read(file, at - length, at - length + DIRECTORY_ENTRY.length, size)
  // Ignores an archive without entries, because its record may be part of a comment.
  return first.equals(DIRECTORY_ENTRY) ? { start, end } : undefined
}

async function read(file: FileHandle, from: number, to: number, size: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.max(Math.min(to, size) - from, 0))
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from)
  return buffer.subarray(0, bytesRead)
}
