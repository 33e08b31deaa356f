import type { Stats } from 'node:fs'
import { access, constants, lstat, mkdir, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UnavailableError } from '../../base/errors.js'
import { FileAccess } from './file-access.js'
import { untrustedFile, untrustedPathOf } from './foreign-files.js'
import { refuseNetworkFolder } from './machine.js'
import { marksOf } from './waiter-board.js'

/** File name of the database in the folder. */
export const DATABASE = 'signalbox.db'

/** Maximum length of the path of the database, in bytes. SQLite allows 512 with the NUL, and appends `-journal`. */
const MAX_PATH_LENGTH = 503

/** The file that a process locks while it opens the database. Its name is short because SQLite opens it, too. */
export const OPEN_LOCK = 'opening.db'

/** The files of the folder, except sockets: the database, its log, its index, the marks of waiters, the open lock. */
export const FILES: readonly string[] = [
  DATABASE,
  `${DATABASE}-wal`,
  `${DATABASE}-shm`,
  marksOf(DATABASE),
  OPEN_LOCK,
]

/** Journals. If one existed, SQLite would roll it back, as if a process had died in the middle of a write. */
const JOURNALS: readonly string[] = [`${DATABASE}-journal`, `${OPEN_LOCK}-journal`]

/** Permissions of a new folder, and of new folders above it. With any umask, only their owner may write them. */
const FOR_OWNER = 0o700
const ABOVE = 0o755

/**
 * Creates a folder, missing folders above it and the open lock, and checks that the folder is suitable for the
 * database. Only its owner may use a new folder.
 * @throws UnavailableError when its path is too long, it is on a network file system, an untrusted user could have
 * created it or its files, or this user may not write a file of the database; the system's error when it can't be
 * created.
 */
export async function prepareFolder(folder: string): Promise<void> {
  refuseLongPath(folder)
  await makeFolder(folder)
  // SQLite resolves symbolic links before it checks the length of the path.
  refuseLongPath(await realpath(folder))
  await refuseNetworkFolder(folder)
  refuseUntrusted(await untrustedPathOf(folder))
  const fileAccess = new FileAccess(folder)
  for (const found of await existingFiles(folder)) {
    refuseUntrusted(found.untrusted)
    await refuseUnusable(found)
    fileAccess.limitExisting(found.path, found.status)
  }
  fileAccess.make(join(folder, OPEN_LOCK))
}

/** Advice about a folder or file in which another user could forge locks and values. */
export const TRUST_ADVICE =
  'another user could forge locks and values there: use a folder that only this user, or a group of this user, may ' +
  'write, in folders of this user or root'

/** Returns how an untrusted user could change the files of an existing folder; undefined if none could. */
export async function untrustedIn(folder: string): Promise<string | undefined> {
  const path = await untrustedPathOf(folder)
  if (path !== undefined) return path
  return (await existingFiles(folder)).find(({ untrusted }) => untrusted !== undefined)?.untrusted
}

/** A file of the folder, or a journal that SQLite would roll back. */
interface ExistingFile {
  readonly path: string
  readonly status: Stats
  /** Why the file is not trusted: it belongs to an untrusted user. */
  readonly untrusted: string | undefined
}

async function existingFiles(folder: string): Promise<ExistingFile[]> {
  const above = await stat(folder)
  const found = await Promise.all(
    [...FILES, ...JOURNALS].map(async (name): Promise<ExistingFile[]> => {
      const path = join(folder, name)
      const status = await lstat(path).catch(ignoreMissing)
      return status === undefined ? [] : [{ path, status, untrusted: untrustedFile(path, status, above) }]
    }),
  )
  return found.flat()
}

function ignoreMissing(error: unknown): undefined {
  if ((error as { code?: string }).code !== 'ENOENT') throw error
}

function refuseUntrusted(untrusted: string | undefined): void {
  if (untrusted !== undefined) throw new UnavailableError(`${untrusted}; ${TRUST_ADVICE}`)
}

/**
 * Creates missing files with the permissions that follow from the folder. SQLite gives its log and index the
 * permissions of the database.
 */
export function makeFiles(folder: string): void {
  const fileAccess = new FileAccess(folder)
  for (const file of [DATABASE, marksOf(DATABASE)]) fileAccess.make(join(folder, file))
}

/**
 * Rejects a file that this user may not write. SQLite would open it read-only, and create a log and an index that
 * belong to this user. Users who may write the database could then no longer open it.
 */
async function refuseUnusable({ path, status }: ExistingFile): Promise<void> {
  if (!status.isFile()) throw new UnavailableError(`${path} is not a regular file`)
  try {
    await access(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    const { code } = cause as { code?: string }
    if (code === 'ENOENT') return
    if (code !== 'EACCES') throw cause
    throw new UnavailableError(`${path} can not be opened for writing by this user`, { cause })
  }
}

function refuseLongPath(folder: string): void {
  const excess = Buffer.byteLength(join(folder, DATABASE)) - MAX_PATH_LENGTH
  if (excess <= 0) return
  throw new UnavailableError(
    `the path of the folder has ${Buffer.byteLength(folder)} bytes, ${excess} more than SQLite takes: ${folder}`,
  )
}

/**
 * Creates a folder and missing folders above it. The `recursive` option of mkdir would never return where the system
 * reports an existing folder as missing, as Linux does below /proc.
 */
async function makeFolder(folder: string, mode = FOR_OWNER): Promise<void> {
  try {
    await mkdir(folder, mode)
  } catch (error) {
    const { code } = error as { code?: string }
    // Another process may create it at the same time.
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return
    if (code !== 'ENOENT' || dirname(folder) === folder) throw error
    await makeFolder(dirname(folder), ABOVE)
    await mkdir(folder, mode).catch((again: unknown) => {
      if ((again as { code?: string }).code !== 'EEXIST') throw again
    })
  }
}
