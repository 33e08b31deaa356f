import { open, type Box, type BoxOptions } from 'signalbox'
import { busy, type Operations } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'

/** One task in a process with a box on the memory engine. */
export function inBox(
  name: string,
  operationsOf: (box: Box) => Operations | Promise<Operations>,
  options?: BoxOptions,
): ForkedSubject {
  return forked(name, async () => {
    const box = await open('memory:', options)
    const operations = await operationsOf(box)
    return { perform: window => busy(window, 1, operations), stop: () => box.close() }
  })
}
