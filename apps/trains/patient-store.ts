import type { Outages } from './outages.js'
import type { TrainStore } from './store.js'

/** A store whose engine is waited for while it is out of reach. */
export function patientStore(store: TrainStore, outages: Outages): TrainStore {
  return {
    get: key => outages.sitOut(() => store.get(key)),
    put: (key, value) => outages.sitOut(() => store.put(key, value)),
    // Parts that were committed by a try of which nothing was heard are not committed again.
    transaction: (keys, change, options) => outages.sitOut(() => store.transaction(keys, change, options)),
  }
}
