import { createHash } from 'node:crypto'

/**
 * Returns the worker, counted from 0, that gets all messages of a train. The choice depends only on the train's name,
 * and distributes similar names evenly.
 */
export function workerOf(train: string, workers: number): number {
  return createHash('md5').update(train).digest().readUInt32BE() % workers
}
