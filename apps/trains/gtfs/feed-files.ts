import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Entry, ZipFile } from 'yauzl'
import { InputError } from '../input/source.js'
import { reasonOf } from '../reason.js'
import { openArchiveIn } from './archive-slice.js'

/** The files of a feed, in a folder or zip archive. */
export interface FeedFiles {
  /** As the caller named it. */
  readonly path: string
  has(file: string): boolean
  /** @throws InputError if the file is missing or can't be unpacked. */
  open(file: string): Promise<Readable>
  close(): void
}

/** @throws InputError if `path` is neither a folder nor a readable zip archive. */
export async function openFeed(path: string): Promise<FeedFiles> {
  const stats = await stat(path).catch((error: unknown) => {
    throw unreadable(path, error)
  })
  return stats.isDirectory() ? openFolder(path) : openArchive(path)
}

async function openFolder(path: string): Promise<FeedFiles> {
  const names = new Set(
    await readdir(path).catch((error: unknown) => {
      throw unreadable(path, error)
    }),
  )
  return {
    path,
    has: file => names.has(file),
    async open(file) {
      if (!names.has(file)) throw missing(path, file)
      return createReadStream(join(path, file))
    },
    close: () => undefined,
  }
}

async function openArchive(path: string): Promise<FeedFiles> {
  const entries = new Map<string, Entry>()
  let archive: ZipFile
  try {
    archive = await openArchiveIn(path)
    for await (const entry of archive.eachEntry()) entries.set(entry.fileName, entry)
  } catch (error) {
    throw unreadable(path, error, 'neither a folder nor a readable zip archive: ')
  }
  return {
    path,
    has: file => entries.has(file),
    async open(file) {
      const entry = entries.get(file)
      if (!entry)
        throw missing(
          path,
          file,
          [...entries.keys()].find(name => name.endsWith(`/${file}`)),
        )
      try {
        return await archive.openReadStreamPromise(entry)
      } catch (error) {
        throw unreadable(`${file} in ${path}`, error)
      }
    },
    close: () => archive.close(),
  }
}

function missing(path: string, file: string, elsewhere?: string): InputError {
  const hint = elsewhere === undefined ? '' : `; ${elsewhere} must be at the top level of the archive`
  return new InputError(`${path} has no ${file}${hint}`)
}

function unreadable(path: string, cause: unknown, what = ''): InputError {
  return new InputError(`can't read ${path}: ${what}${reasonOf(cause)}`, { cause })
}
