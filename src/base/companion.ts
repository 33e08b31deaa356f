import { ifInstalled } from './if-installed.js'
import { missingPackage } from './missing-package.js'

/**
 * Returns the code of a part of Signalbox that is in a package of its own.
 * @param part that needs the package, as in `Hazelcast`. @param entry that `loading` imports
 * @throws MissingPackageError that says what to install if the package is not installed
 */
export async function companion<Code>(part: string, entry: string, loading: Promise<Code>): Promise<Code> {
  const code = await ifInstalled(entry, loading)
  if (code === undefined) throw missingPackage(`${part} needs a package`, [entry.split('/')[0]!])
  return code
}
