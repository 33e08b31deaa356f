import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename } from 'node:path'

let found: { readonly name: string; readonly scope: string } | undefined

/**
 * Returns a name of this process, or on Linux of this thread. {@link isDead} returns whether it has ended.
 * @throws Error when the system does not provide it
 */
export function thisProcess(): string {
  return self().name
}

/**
 * Returns a name of the scope of process IDs. On Linux, it differs in each container and after each boot.
 * @throws Error when the system does not provide it
 */
export function pidScope(): string {
  return self().scope
}

function self(): { readonly name: string; readonly scope: string } {
  if (found) return found
  const isLinux = process.platform === 'linux'
  const scope = isLinux ? linuxScope() : hostname()
  const hash = createHash('sha256').update(scope).digest('hex').slice(0, 16)
  return (found = { name: isLinux ? thisThread() : `${process.pid} 0`, scope: hash })
}

/** The boot of this machine, and the namespaces that give process IDs and start times their meaning. */
function linuxScope(): string {
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  // Kernels before 5.6, and those built without time namespaces, have one clock for all.
  const hasClocks = lstatSync('/proc/self/ns/time', { throwIfNoEntry: false }) !== undefined
  const clocks = hasClocks ? readlinkSync('/proc/self/ns/time') : 'time'
  return `${bootId} ${readlinkSync('/proc/self/ns/pid')} ${clocks}`
}

/** On Linux, threads have IDs like processes, so a terminated worker thread is known to have ended. */
function thisThread(): string {
  return `${basename(readlinkSync('/proc/thread-self'))} ${String(startOf('thread-self'))}`
}

/** Whether a process of this scope is known to have ended. @param name the result of its {@link thisProcess}. */
export function isDead(name: string): boolean {
  const [, pid, start] = /^(\d+) (\d+)$/.exec(name) ?? []
  if (pid === undefined) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  if (process.platform !== 'linux') return false
  try {
    // A process that has ended keeps its ID until its parent waits for it. Then another process may get the ID.
    return startOf(Number(pid)) !== start
  } catch {
    // The system hides the process.
    return false
  }
}

/** Returns the start time of a process or thread, in ticks of the kernel; undefined if it has ended. */
function startOf(pid: number | 'thread-self'): string | undefined {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second field is a name in parentheses, which may contain anything.
  const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return state === 'Z' || state === 'X' ? undefined : fields[18]
}
