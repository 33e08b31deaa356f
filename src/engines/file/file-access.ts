import {
  chmodSync,
  closeSync,
  fchmodSync,
  fchownSync,
  lchownSync,
  linkSync,
  lstatSync,
  openSync,
  statSync,
  unlinkSync,
  type Stats,
} from 'node:fs'
import { randomBytes } from 'node:crypto'

const GROUP_WRITES = 0o020
const FOR_OWNER = 0o600
const FOR_GROUP = 0o660
const PERMISSIONS = 0o777

/**
 * Sets who may use the files of a folder: their owner, and also the group of the folder if it may write the folder. It
 * never lets every user of the machine use them: any user could then read all values, and block all boxes with a lock
 * on a file.
 */
export class FileAccess {
  readonly #uid: number
  readonly #gid: number
  readonly #mode: number

  /** @param folder a folder that exists. */
  constructor(folder: string) {
    const { mode, uid, gid } = statSync(folder)
    // Files that root creates in the folder of another user belong to that user.
    this.#uid = process.getuid?.() === 0 ? uid : -1
    this.#gid = gid
    this.#mode = (mode & GROUP_WRITES) === 0 ? FOR_OWNER : FOR_GROUP
  }

  /**
   * Creates an empty file unless it exists. Its descriptor is closed before the file gets its name: the system drops
   * all locks of the process on a file when any descriptor of it is closed, and another thread may have locks on this
   * file as soon as it has its name.
   */
  make(path: string): void {
    if (lstatSync(path, { throwIfNoEntry: false })) return
    const temporary = `${path}-${randomBytes(6).toString('hex')}`
    const descriptor = openSync(temporary, 'wx', FOR_OWNER)
    try {
      try {
        const mode = this.#modeAfter(() => fchownSync(descriptor, this.#uid, this.#gid))
        fchmodSync(descriptor, mode)
      } finally {
        closeSync(descriptor)
      }
      linkSync(temporary, path)
    } catch (error) {
      if ((error as { code?: string }).code !== 'EEXIST') throw error
    } finally {
      unlinkSync(temporary)
    }
  }

  /** Limits the access to a file that this user has just created. */
  limit(path: string): void {
    const mode = this.#modeAfter(() => lchownSync(path, this.#uid, this.#gid))
    chmodSync(path, mode)
  }

  /** Removes permissions from a file of this user that a new file would not have, as after a change of the folder's. */
  limitExisting(path: string, { uid, gid, mode }: Stats): void {
    if (uid !== process.geteuid?.()) return
    const limited = mode & PERMISSIONS & (gid === this.#gid ? this.#mode : FOR_OWNER)
    if (limited === (mode & PERMISSIONS)) return
    try {
      chmodSync(path, limited)
    } catch (error) {
      // SQLite deletes its log and index with the last box.
      if ((error as { code?: string }).code !== 'ENOENT') throw error
    }
  }

  /**
   * Returns the mode of a file, after `give` has set its owner and group. Only members of the folder's group may do
   * that; otherwise the file is for its owner alone.
   */
  #modeAfter(give: () => void): number {
    try {
      give()
      return this.#mode
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') throw error
      return FOR_OWNER
    }
  }
}
