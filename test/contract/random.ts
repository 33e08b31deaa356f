export { Random } from '../../apps/chaos/random.js'
