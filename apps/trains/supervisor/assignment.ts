/**
 * The worker, counted from 0, that gets all messages of a train. It depends on the name alone, so it is the same
 * in every run, and names that differ in one character are spread evenly.
 */
export function workerOf(train: string, workers: number): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < train.length; index++) {
    hash = Math.imul(hash ^ train.charCodeAt(index), 0x01000193)
  }
  // FNV-1a alone spreads similar short names badly over few workers; this is the finish of MurmurHash3.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) % workers
}
