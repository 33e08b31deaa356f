import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** How a process is isolated from those of the test. */
export interface Apart {
  /** Whether it has process IDs of its own. */
  readonly pid?: boolean
  /** Whether it reads another boot ID than that of the kernel. */
  readonly boot?: boolean
  /** Time by which its monotonic and boot-time clocks are ahead, in seconds. */
  readonly ahead?: number
}

/** Returns the options that make `unshare` run as root: another user can be root in a user namespace. */
export function asRoot(): string[] {
  return process.getuid!() === 0 ? [] : ['--user', '--map-root-user']
}

/**
 * Returns the command that starts another one in isolation. The process dies with this command.
 * @param folder receives a file with the boot ID
 */
export function apart(folder: string, { pid = false, boot = false, ahead }: Apart): string[] {
  const namespaces = ['--mount', '--fork', '--kill-child', ...(pid ? ['--pid', '--mount-proc'] : [])]
  if (ahead !== undefined) namespaces.push('--time', `--monotonic=${ahead}`, `--boottime=${ahead}`)
  const file = join(folder, `${randomUUID()}.boot`)
  writeFileSync(file, `${randomUUID()}\n`)
  const mount = boot ? 'mount --bind "$0" /proc/sys/kernel/random/boot_id && ' : ''
  return ['unshare', ...asRoot(), ...namespaces, 'sh', '-c', `${mount}exec "$@"`, file]
}

/** Returns the reason why no process can be isolated here, or undefined if one can be. */
export function cannotBeApart(folder: string): string | undefined {
  const [command, ...argv] = apart(folder, { pid: true, boot: true, ahead: 1 })
  const { error, status, stderr } = spawnSync(command!, [...argv, 'true'], { encoding: 'utf8' })
  if (status === 0) return undefined
  return `namespaces cannot be created here: ${error?.message ?? stderr.trim()}`
}
