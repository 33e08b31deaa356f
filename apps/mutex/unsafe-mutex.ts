import type { Box } from 'signalbox'

/**
 * What many lock libraries once did, and hand-written locks still do: deletes the present lock, also that of another
 * holder.
 * @returns the lock id that was deleted
 */
export async function deleteUnconditionally(box: Box, mutex: string): Promise<string> {
  let deleted = 'none'
  for await (const { key, holders } of box.inspect(mutex, { exact: true })) {
    const holder = holders[0]
    if (holder?.token === undefined) continue
    if (await box.forceRelease(key, holder.token)) deleted = holder.label ?? 'unknown'
  }
  return deleted
}
