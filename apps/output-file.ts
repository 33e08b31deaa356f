import { accessSync, closeSync, constants, openSync, rmSync, statSync } from 'node:fs'
import { InvalidArgumentError } from 'signalbox'

/**
 * Checks before a run that a file can be written after it. Keeps an existing file as it is, and leaves no new one.
 * @throws InvalidArgumentError if the path can't be opened for writing, for example because it is a folder.
 */
export function checkWritable(path: string): void {
  try {
    const there = statSync(path, { throwIfNoEntry: false })
    // Opening and closing a pipe would look like the end of the output to its reader.
    if (there && !there.isFile() && !there.isDirectory()) return accessSync(path, constants.W_OK)
    closeSync(openSync(path, 'a'))
    if (!there) rmSync(path)
  } catch (error) {
    throw new InvalidArgumentError(`can't write ${path}: ${error instanceof Error ? error.message : ''}`, {
      cause: error,
    })
  }
}
