import { createHash } from 'node:crypto'

/**
 * Returns the worker, counted from 0, that gets all messages of a train. It depends only on the name, and similar names
 * are distributed evenly.
 */
export function workerOf(train: string, workers: number): number {
  return createHash('md5').update(train).digest().readUInt32BE() % workers
}
