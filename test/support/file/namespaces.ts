import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where a process runs apart from those of the test. */
export interface Apart {
  /** Its process ids are its own. */
  readonly pid?: boolean
  /** It reads another boot id than the kernel's. */
  readonly boot?: boolean
  /** How far its monotonic clock and that of the boot are ahead, seconds. */
  readonly ahead?: number
}

/** What `unshare` takes to be root: another user can be root in a namespace of users. */
export function asRoot(): string[] {
  return process.getuid!() === 0 ? [] : ['--user', '--map-root-user']
}

/**
 * What a process is started with to run apart. It dies with the command that starts it.
 * @param folder takes a file for the boot id.
 */
export function apart(folder: string, { pid = false, boot = false, ahead }: Apart): string[] {
  const namespaces = ['--mount', '--fork', '--kill-child', ...(pid ? ['--pid', '--mount-proc'] : [])]
  if (ahead !== undefined) namespaces.push('--time', `--monotonic=${ahead}`, `--boottime=${ahead}`)
  const file = join(folder, `${randomUUID()}.boot`)
  writeFileSync(file, `${randomUUID()}\n`)
  const mount = boot ? 'mount --bind "$0" /proc/sys/kernel/random/boot_id && ' : ''
  return ['unshare', ...asRoot(), ...namespaces, 'sh', '-c', `${mount}exec "$@"`, file]
}

/** Why no process can be started apart here; undefined when it can be. */
export function cannotBeApart(folder: string): string | undefined {
  const [command, ...argv] = apart(folder, { pid: true, boot: true, ahead: 1 })
  const { error, status, stderr } = spawnSync(command!, [...argv, 'true'], { encoding: 'utf8' })
  if (status === 0) return undefined
  return `namespaces can not be made here: ${error?.message ?? stderr.trim()}`
}
