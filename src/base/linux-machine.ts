import { readFileSync, readlinkSync } from 'node:fs'

/**
 * The surroundings of a process. Process IDs and clocks mean the same to two processes only if their surroundings are
 * equal.
 */
export interface Machine {
  /** Different after every start of the machine. Containers of one machine may have different ones, too. */
  readonly bootId: string
  /** Equal for processes that see each other under the same process IDs and read the same clocks. */
  readonly namespaces: string
}

/** Reads the ID of this boot of Linux, and the namespaces of processes and clocks. @throws Error of the system */
export function linuxMachine(): Machine {
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return { bootId, namespaces: `${readlinkSync('/proc/self/ns/pid')} ${timeNamespace()}` }
}

/**
 * Reads the namespace of clocks. Kernels before 5.6, and those built without time namespaces, have one clock for all.
 */
function timeNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/time')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'time'
    throw error
  }
}
