import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Writes the address of the server into the folder that the processes of one subject share. */
export function tellAddress(folder: string, address: string): Promise<void> {
  return writeFile(file(folder), address)
}

/** Reads the address of the server from the folder. */
export function toldAddress(folder: string): Promise<string> {
  return readFile(file(folder), 'utf8')
}

function file(folder: string): string {
  return join(folder, 'address')
}
