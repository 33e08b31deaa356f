import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Tells the processes of one subject, which share a folder, where its server is. */
export function tellAddress(folder: string, address: string): Promise<void> {
  return writeFile(file(folder), address)
}

/** Where the server of this folder is. */
export function toldAddress(folder: string): Promise<string> {
  return readFile(file(folder), 'utf8')
}

function file(folder: string): string {
  return join(folder, 'address')
}
