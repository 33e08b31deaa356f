import { accessSync, closeSync, constants, openSync, rmSync, statSync } from 'node:fs'
import { InvalidArgumentError } from 'signalbox'

/**
 * Finds out before a run whether a file can be written after it. What is in the file stays; where none exists, none
 * exists afterwards.
 * @throws InvalidArgumentError when it can't be opened for writing, such as a folder.
 */
export function checkWritable(path: string): void {
  try {
    const there = statSync(path, { throwIfNoEntry: false })
    // The reader of a pipe would take the end of a first opening for the end of the output.
    if (there && !there.isFile() && !there.isDirectory()) return accessSync(path, constants.W_OK)
    closeSync(openSync(path, 'a'))
    if (!there) rmSync(path)
  } catch (error) {
    throw new InvalidArgumentError(`can't write ${path}: ${error instanceof Error ? error.message : ''}`, {
      cause: error,
    })
  }
}
