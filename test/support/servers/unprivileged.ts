import { chownSync } from 'node:fs'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'

/** The user for programs that refuse to run as root. Undefined if this process isn't root. */
export const unprivileged = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** Creates a folder of that user, which is removed with this process. */
export function unprivilegedFolder(name: string): string {
  const folder = reapedFolder(name)
  if (unprivileged) chownSync(folder, unprivileged.uid, unprivileged.gid)
  return folder
}
