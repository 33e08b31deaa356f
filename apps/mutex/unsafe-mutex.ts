import type { Box } from 'signalbox'

/**
 * Deletes the current lock without checking its holder. Many lock libraries once did this, and hand-written locks still
 * do.
 * @returns the ID of the deleted lock, or `none`.
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
