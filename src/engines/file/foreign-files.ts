import { lstat, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const OTHERS_WRITE = 0o002
const GROUP_WRITES = 0o020
const STICKY = 0o1000
const ROOT = 0

/** The part of the status of a file that determines who may change it. */
interface Owned {
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

/**
 * Returns which untrusted user owns a folder or a part of its path, or may replace its files; undefined if there is
 * none. This user trusts root, and the members of its groups that may write the folder. Root also trusts the owner of
 * another user's folder, because its administrator has chosen it, but not in a place where every user may create
 * folders. The owner of a folder decides what its group may do, even if an access control list shows its mask as the
 * permissions of the group.
 * @param folder an absolute path that exists
 */
export async function untrustedPathOf(folder: string): Promise<string | undefined> {
  const found = await stat(folder)
  const above = await untrustedAbove(folder, isShared(found) ? [found.uid] : [])
  if (above !== undefined) return above
  if (isOpen(found) && !isSticky(found)) return `every user may replace the files in ${folder}`
  if (isOwn(found) || isShared(found) || isRoot()) return undefined
  return `${folder} belongs to ${named(found)}`
}

/**
 * Returns the reason not to trust a file in a trusted folder: it belongs to an untrusted user, perhaps from a time when
 * every user could create files in the folder. Undefined if there is none.
 */
export function untrustedFile(path: string, file: Owned, folder: Owned): string | undefined {
  if (isOwn(file)) return undefined
  if (!isOpen(folder) && (folder.uid === file.uid || groupWrites(folder))) return undefined
  return `${path} belongs to ${named(file)}`
}

/**
 * Checks each folder and symbolic link on the way to a path: a user who may write a folder can move its contents away.
 * @param owners further users who may own folders on the way
 */
async function untrustedAbove(path: string, owners: readonly number[]): Promise<string | undefined> {
  const parent = dirname(path)
  if (parent === path) return undefined
  const above = await untrustedAbove(parent, owners)
  if (above !== undefined) return above
  const folder = await stat(parent)
  const file = await lstat(path)
  if (isOpen(folder) && !isOwn(file) && !isShared(file))
    return `${path} belongs to ${named(file)}, and every user may make files in ${parent}`
  // The user who mounts a file system decides who shares it. Kubernetes lets every user write in an `emptyDir`.
  const isMounted = folder.dev !== (await stat(dirname(await realpath(parent)))).dev
  const mover = isMounted ? undefined : moverOf(folder, owners)
  if (mover !== undefined) return `${mover} may write ${parent}, and so move ${path}`
  return file.isSymbolicLink()
    ? untrustedAbove(resolve(await realpath(parent), await readlink(path)), owners)
    : undefined
}

/** Returns the untrusted user, other than their owners, who may move the files of a folder. */
function moverOf(folder: Owned, owners: readonly number[]): string | undefined {
  const isMine = folder.uid === process.geteuid?.()
  const isTrusted = isOwn(folder) || isShared(folder) || owners.includes(folder.uid)
  if (!isTrusted && !isRoot()) return named(folder)
  if (isSticky(folder)) return undefined
  if (isOpen(folder)) return 'every user'
  const isForeign = groupWrites(folder) && !isMember(folder) && folder.gid !== ROOT
  return isForeign && !isMine && !isRoot() ? `a group without this user (${folder.gid})` : undefined
}

function isOpen({ mode }: Owned): boolean {
  return (mode & OTHERS_WRITE) !== 0
}

function isSticky({ mode }: Owned): boolean {
  return (mode & STICKY) !== 0
}

function groupWrites({ mode }: Owned): boolean {
  return (mode & GROUP_WRITES) !== 0
}

function isRoot(): boolean {
  return process.geteuid?.() === ROOT
}

function isOwn({ uid }: Owned): boolean {
  return uid === ROOT || uid === process.geteuid?.()
}

function isMember({ gid }: Owned): boolean {
  return process.getegid?.() === gid || process.getgroups?.().includes(gid) === true
}

/** Whether an administrator has put this user into the group that may write a folder. */
function isShared(folder: Owned): boolean {
  return isMember(folder) && groupWrites(folder) && !isOpen(folder)
}

function named({ uid }: Owned): string {
  return `another user (${uid})`
}
