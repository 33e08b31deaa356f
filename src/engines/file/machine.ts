import { execFile } from 'node:child_process'
import { readFile, realpath, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import { UnavailableError } from '../../base/errors.js'
import { linuxMachine, type Machine } from '../../base/linux-machine.js'

const run = promisify(execFile)

/**
 * Reads which boot this is, and which namespaces of processes and clocks.
 * @throws UnavailableError on a system other than Linux and macOS, or when the system does not say.
 */
export async function thisMachine(): Promise<Machine> {
  try {
    if (process.platform === 'linux') return linuxMachine()
    if (process.platform === 'darwin') {
      const { stdout } = await run('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'])
      return { bootId: stdout.trim(), namespaces: 'macos' }
    }
  } catch (cause) {
    // The failure is not about this file.
    if (isOutOfFiles(cause)) throw cause
    throw new UnavailableError('The file engine has to know the boot id and the namespaces; see the cause', {
      cause,
    })
  }
  throw new UnavailableError(`The file engine works on Linux and macOS, not on ${process.platform}`)
}

function isOutOfFiles(error: unknown): boolean {
  const { code } = error as { code?: string }
  return code === 'EMFILE' || code === 'ENFILE'
}

/**
 * Makes sure that a folder lies on a file system of this machine: on others, file locks and shared memory don't reach
 * the processes of other machines, or not always.
 * @throws UnavailableError that names the folder and its file system when it does not.
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

/** FUSE does not say where the files are; these types are known to be on a local disk. */
const LOCAL_FUSE = new Set(['fuseblk', 'fuse.fuse-overlayfs'])

/**
 * The name of the file system when it is a remote one.
 * @param type the number that statfs gives.
 * @param mounts the text of `/proc/self/mountinfo`, which distinguishes the kinds of FUSE.
 */
export function remoteOnLinux(type: number, path: string, mounts: string): string | undefined {
  // The number is signed in some kernels' answers.
  const number = Number(BigInt.asUintN(32, BigInt(type)))
  if (number !== FUSE) return REMOTE[number]
  let longest = ''
  let name = 'fuse'
  for (const line of mounts.split('\n')) {
    const [before, after] = line.split(' - ')
    const point = before?.split(' ')[4]
    if (point === undefined || after === undefined) continue
    const plain = unescaped(point)
    // Of two mounts on one point the later one is seen.
    if (contains(plain, path) && plain.length >= longest.length) {
      longest = plain
      name = after.split(' ')[0]!
    }
  }
  return LOCAL_FUSE.has(name) ? undefined : name
}

/**
 * The name of the file system when it is a remote one.
 * @param mounts what `mount` prints: `/dev/disk3s1 on / (apfs, local, journaled)`
 */
export function remoteOnMacos(path: string, mounts: string): string | undefined {
  let longest = ''
  let options: string[] = []
  for (const line of mounts.split('\n')) {
    const match = / on (\/.*) \(([^()]*)\)$/.exec(line)
    if (match && contains(match[1]!, path) && match[1]!.length >= longest.length) {
      longest = match[1]!
      options = match[2]!.split(', ')
    }
  }
  return options.includes('local') ? undefined : (options[0] ?? 'unknown')
}

function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

/** mountinfo writes blanks and backslashes of a path in octal. */
function unescaped(point: string): string {
  return point.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))
}
