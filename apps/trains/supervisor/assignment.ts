import { createHash } from 'node:crypto'

/**
 * The worker, counted from 0, that gets all messages of a train. It depends on the name alone, so it is the same
 * in every run, and names that differ in one character are spread evenly.
 */
export function workerOf(train: string, workers: number): number {
  return createHash('md5').update(train).digest().readUInt32BE() % workers
}
