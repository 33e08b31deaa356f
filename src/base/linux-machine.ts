import { readFileSync, readlinkSync } from 'node:fs'

/** Where a process runs, as far as it decides whether its process ids and clocks mean anything to another. */
export interface Machine {
  /** Another one after every start of the machine. Containers of one machine may be given different ones, too. */
  readonly bootId: string
  /** The same for processes that see each other under the same process ids and read the same clocks. */
  readonly namespaces: string
}

/** Reads which boot of Linux this is, and which namespaces of processes and clocks. @throws Error of the system */
export function linuxMachine(): Machine {
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return { bootId, namespaces: `${readlinkSync('/proc/self/ns/pid')} ${timeNamespace()}` }
}

/** Kernels before 5.6, and those built without time namespaces, have one clock for all. */
function timeNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/time')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'time'
    throw error
  }
}
