import type { Report, Setting } from '../nest.js'

/** The settings of this application. */
export const setting = JSON.parse(process.argv[2]!) as Setting

export function report(message: Report): void {
  process.send!(message)
}

/** Resolves when the test sends `letGo` with this key. */
export function letGo(key: string): Promise<void> {
  return new Promise(resolve => {
    const listen = (order: unknown): void => {
      if ((order as { readonly letGo?: string }).letGo !== key) return
      process.off('message', listen)
      resolve()
    }
    process.on('message', listen)
  })
}
