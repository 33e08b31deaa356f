import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename } from 'node:path'

let found: { readonly name: string; readonly place: string } | undefined

/**
 * Names this process, or this thread on Linux. {@link isDead} tells whether it has ended.
 * @throws Error when the system does not say
 */
export function thisProcess(): string {
  return self().name
}

/**
 * Names where process ids mean the same processes: another name in each container, and after each start of the machine.
 * @throws Error when the system does not say
 */
export function thisPlace(): string {
  return self().place
}

function self(): { readonly name: string; readonly place: string } {
  if (found) return found
  const isLinux = process.platform === 'linux'
  const place = isLinux ? linuxPlace() : hostname()
  const hash = createHash('sha256').update(place).digest('hex').slice(0, 16)
  return (found = { name: isLinux ? thisThread() : `${process.pid} 0`, place: hash })
}

/** The boot of this machine, and the namespaces that give process IDs and start times their meaning. */
function linuxPlace(): string {
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  // Kernels before 5.6, and those built without time namespaces, have one clock for all.
  const time = existsSync('/proc/self/ns/time') ? readlinkSync('/proc/self/ns/time') : 'time'
  return `${bootId} ${readlinkSync('/proc/self/ns/pid')} ${time}`
}

/** On Linux, threads have ids like processes, so a worker thread that was terminated is known to have ended. */
function thisThread(): string {
  return `${basename(readlinkSync('/proc/thread-self'))} ${String(startOf('thread-self'))}`
}

/** Whether a process of this place is known to have ended, by the name that it has for itself. */
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
    // A process that has ended keeps its id until its parent takes note. Then another one may get it.
    return startOf(Number(pid)) !== start
  } catch {
    // The system hides what it is.
    return false
  }
}

/** When a process or thread started, in ticks of the kernel; undefined if it has ended. */
function startOf(pid: number | 'thread-self'): string | undefined {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second field is a name in parentheses, which may contain anything.
  const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return state === 'Z' || state === 'X' ? undefined : fields[18]
}
