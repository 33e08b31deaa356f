import { lstat, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

const OTHERS_WRITE = 0o002
const GROUP_WRITES = 0o020
const STICKY = 0o1000
const ROOT = 0

/** The part of the status of a file that says who may change it. */
interface Owned {
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

/**
 * Says which user that is not trusted has made a folder or a part of its path, or may replace its files; undefined if
 * there is none. Trusted are this user, root, and the members of a group of this user that the folder lets write. Root
 * also trusts whom its administrator has given the place: a folder of another user, but not one in a place where every
 * user may make folders.
 * @param folder an absolute path that exists
 */
export async function untrustedPathOf(folder: string): Promise<string | undefined> {
  const above = await untrustedAbove(folder)
  if (above !== undefined) return above
  const found = await stat(folder)
  if (isOpen(found) && (found.mode & STICKY) === 0) return `every user may replace the files in ${folder}`
  if (isOwn(found) || isShared(found) || process.geteuid?.() === ROOT) return undefined
  return `${folder} belongs to ${named(found)}`
}

/**
 * Says that a file of a folder belongs to a user that is not trusted there: it may be from a time when every user could
 * make files in the folder. Undefined if it does not, or is missing.
 */
export async function untrustedFileOf(folder: string, name: string): Promise<string | undefined> {
  const path = join(folder, name)
  const file = await lstat(path).catch(() => undefined)
  if (file === undefined || isOwn(file)) return undefined
  const above = await stat(folder)
  if (!isOpen(above) && (above.uid === file.uid || isShared(above))) return undefined
  return `${path} belongs to ${named(file)}`
}

/** Checks each folder and symbolic link on the way to a path that is in a folder where every user may make files. */
async function untrustedAbove(path: string): Promise<string | undefined> {
  const parent = dirname(path)
  if (parent === path) return undefined
  const above = await untrustedAbove(parent)
  if (above !== undefined) return above
  const file = await lstat(path)
  if (isOpen(await stat(parent)) && !isOwn(file) && !isShared(file))
    return `${path} belongs to ${named(file)}, and every user may make files in ${parent}`
  return file.isSymbolicLink()
    ? untrustedAbove(resolve(await realpath(parent), await readlink(path)))
    : undefined
}

function isOpen({ mode }: Owned): boolean {
  return (mode & OTHERS_WRITE) !== 0
}

function isOwn({ uid }: Owned): boolean {
  return uid === ROOT || uid === process.geteuid?.()
}

/** Whether an administrator has put this user into the group that may write a folder. */
function isShared({ mode, gid }: Owned): boolean {
  const isMember = process.getegid?.() === gid || process.getgroups?.().includes(gid) === true
  return isMember && (mode & GROUP_WRITES) !== 0 && (mode & OTHERS_WRITE) === 0
}

function named({ uid }: Owned): string {
  return `another user (${uid})`
}
