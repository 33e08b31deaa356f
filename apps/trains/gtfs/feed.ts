import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { openPromise } from 'yauzl'
import type { FindingsListener } from '../input/findings.js'
import { InputError } from '../input/source.js'
import { reasonOf } from '../reason.js'

/** A feed: its files in a folder or zip archive, and the listener for their faults. */
export interface Feed {
  readonly path: string
  readonly findings: FindingsListener
  has(file: string): boolean
  /** @throws InputError if the file is missing or can't be unpacked. */
  open(file: string): Promise<Readable>
  close(): void
}

interface Files {
  readonly open: ReadonlyMap<string, () => Promise<Readable>>
  readonly close: () => void
}

/** Opens a feed. @throws InputError if `path` is neither a folder nor a readable zip archive. */
export async function openFeed(path: string, findings: FindingsListener): Promise<Feed> {
  let files: Files
  try {
    files = (await stat(path)).isDirectory() ? await folder(path) : await archive(path)
  } catch (error) {
    throw new InputError(`can't read ${path}: ${reasonOf(error)}`, { cause: error })
  }
  return {
    path,
    findings,
    has: file => files.open.has(file),
    async open(file) {
      const open = files.open.get(file)
      if (open)
        return open().catch((error: unknown) => {
          throw new InputError(`can't read ${file} in ${path}: ${reasonOf(error)}`, { cause: error })
        })
      const nested = [...files.open.keys()].find(name => name.endsWith(`/${file}`))
      const hint = nested === undefined ? '' : `; ${nested} must be at the top level of the archive`
      throw new InputError(`${path} has no ${file}${hint}`)
    },
    close: files.close,
  }
}

async function folder(path: string): Promise<Files> {
  const names = await readdir(path)
  return {
    open: new Map(names.map(name => [name, async () => createReadStream(join(path, name))])),
    close: () => undefined,
  }
}

async function archive(path: string): Promise<Files> {
  try {
    const zip = await openPromise(path, { autoClose: false })
    const open = new Map<string, () => Promise<Readable>>()
    for await (const entry of zip.eachEntry())
      open.set(entry.fileName, () => zip.openReadStreamPromise(entry))
    return { open, close: () => zip.close() }
  } catch (error) {
    throw new Error(`neither a folder nor a readable zip archive: ${reasonOf(error)}`, { cause: error })
  }
}
