/* How a row that is no measurement is written: as a float that is not a number, with its level in the bits. */

#ifndef PLAINRISK_READING_H
#define PLAINRISK_READING_H

#define OUTSIDE 0x7FC00000u /* not a number */
#define PAYLOAD 0x003FFFFFu /* the bits that are free: 1 is the first level after the bins */

#endif
