import { execFile } from 'node:child_process'
import { readFile, realpath, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import { UnavailableError } from '../../base/errors.js'
import { linuxMachine, type Machine } from '../../base/linux-machine.js'

const run = promisify(execFile)

/**
 * Reads the ID of this boot, and the namespaces of processes and clocks.
 * @throws UnavailableError on a system other than Linux and macOS, or when they can't be read; the error of the system
 * when too many files are open.
 */
export async function thisMachine(): Promise<Machine> {
  try {
    if (process.platform === 'linux') return linuxMachine()
    if (process.platform === 'darwin') {
      const { stdout } = await run('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'])
      return { bootId: stdout.trim(), namespaces: 'macos' }
    }
  } catch (cause) {
    // The process or the system has too many open files, whichever file it reads.
    if (isOutOfFiles(cause)) throw cause
    throw new UnavailableError('could not read the boot ID and the namespaces; see the cause', { cause })
  }
  throw new UnavailableError(`the file engine works on Linux and macOS, not on ${process.platform}`)
}

function isOutOfFiles(error: unknown): boolean {
  const { code } = error as { code?: string }
  return code === 'EMFILE' || code === 'ENFILE'
}

/**
 * Rejects a folder on a file system that other machines share. There, file locks and shared memory don't always reach
 * the processes of other machines.
 * @throws UnavailableError that names the folder and its file system.
 */
export async function refuseNetworkFolder(folder: string): Promise<void> {
  const path = await realpath(folder)
  const remote =
    process.platform === 'linux'
      ? remoteOnLinux((await statfs(path)).type, path, await readFile('/proc/self/mountinfo', 'utf8'))
      : remoteOnMacos(path, (await run('/sbin/mount')).stdout)
  if (remote !== undefined) {
    throw new UnavailableError(
      `${folder} is on a network file system (${remote}); the file engine needs a local disk`,
    )
  }
}

const FUSE = 0x65735546

/** File systems that other machines share, by their number in statfs(2). */
const REMOTE: Readonly<Record<number, string>> = {
  0x6969: 'nfs',
  0x517b: 'smb',
  0xfe534d42: 'smb2',
  0xff534d42: 'cifs',
  0x01021997: '9p',
  0x00c36400: 'ceph',
  0x5346414f: 'afs',
  0x6b414653: 'afs',
  0x73757245: 'coda',
  0x564c: 'ncp',
  0x01161970: 'gfs2',
  0x7461636f: 'ocfs2',
  0x0bd00bd0: 'lustre',
  0x47504653: 'gpfs',
  0x786f4256: 'vboxsf',
}

/** Types of FUSE whose files are known to be on a local disk. Other types are considered remote. */
const LOCAL_FUSE = new Set(['fuseblk', 'fuse.fuse-overlayfs'])

/**
 * Returns the name of the file system if it is remote.
 * @param type the number that statfs returns.
 * @param mounts the text of `/proc/self/mountinfo`, which distinguishes the kinds of FUSE.
 */
export function remoteOnLinux(type: number, path: string, mounts: string): string | undefined {
  // Some kernels return a signed number.
  const number = Number(BigInt.asUintN(32, BigInt(type)))
  if (number !== FUSE) return REMOTE[number]
  const all = mounts.split('\n').map(line => /^(?:\S+ ){4}(\S+) .*? - (\S+)/.exec(line))
  const name = mountedAt(path, all, unescaped) ?? 'fuse'
  return LOCAL_FUSE.has(name) ? undefined : name
}

/**
 * Returns the name of the file system if it is remote.
 * @param mounts the output of `mount`: `/dev/disk3s1 on / (apfs, local, journaled)`
 */
export function remoteOnMacos(path: string, mounts: string): string | undefined {
  const all = mounts.split('\n').map(line => / on (\/.*) \(([^()]*)\)$/.exec(line))
  const options = mountedAt(path, all)?.split(', ') ?? ['unknown']
  return options.includes('local') ? undefined : options[0]
}

/**
 * Returns the second group of the mount that has a path, if any. The later one of two mounts at one point hides the
 * other.
 * @param mounts matches with the mount point as the first group.
 */
function mountedAt(
  path: string,
  mounts: readonly (RegExpExecArray | null)[],
  decoded = (point: string): string => point,
): string | undefined {
  const found = mounts.flatMap(match => (match ? [{ point: decoded(match[1]!), what: match[2]! }] : []))
  const around = found.filter(({ point }) => contains(point, path))
  return around.sort((a, b) => a.point.length - b.point.length).at(-1)?.what
}

function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

/** Decodes a path of mountinfo, which has blanks and backslashes in octal. */
function unescaped(point: string): string {
  return point.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))
}
